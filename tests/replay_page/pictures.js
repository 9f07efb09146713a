function ask({requests}) {
  return requests.map((request) => {
    const box = document.getElementById("view");
    box.replaceChildren();
    const picture = new AccessPicture(box);
    picture.show(request);
    const cells = [...box.querySelectorAll(".cell text")].map((one) => one.textContent);
    const text = box.querySelector(".detail").textContent;
    picture.show(request, 0);
    const told = {cells, text, first: box.querySelector(".detail").textContent, wave: picture.wave};
    const now = [...box.querySelectorAll(".lane.now")].map((one) => Number(one.dataset.lane));
    picture.destroy();
    return {...told, now, controls: !box.querySelector(".waves-bar").hidden};
  });
}
